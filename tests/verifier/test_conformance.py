"""
The rules of the standards that fall to those who verify, step up and remember used tokens: each has the test that shows it.
"""

import csv
from pathlib import Path

import pytest

RULES = Path(__file__).parents[2] / ".." / "shared" / "conformance.csv"
SIDES = {"verifier", "stepup", "replay"}

PLACES = {
    "seed-lifetime-verify": "test_procedure.py: test_a_life_is_at_most_a_minute",
    "seed-es256-only": "test_procedure.py: test_no_other_algorithm_is_accepted",
    "seed-refetch-30s": "test_cases_b.py: test_b17_a_flood_of_random_kids",
    "seed-tolerance-default": "test_verifiers.py: test_a_verifier_that_makes_no_sense_is_not_built",
    "seed-reasons": "test_errors.py: test_a_refused_token",
    "seed-replay-interface": "test_verifiers_store.py: test_a_plain_store_is_asked_literally",
    "seed-required-scope": "test_procedure_demands.py: test_a_demanded_word_is_not_granted",
    "seed-no-enumerable": "test_context.py: test_no_part_of_the_token_is_in_it",
    "seed-stepup-range": "test_step_up.py: test_an_impossible_demand_cannot_be_built",
    "seed-stepup-same-customer": "../issuer/test_token_conformance.py: test_the_key_of_an_action_outlives_a_step_up",
    "at-required-claims-verify": "test_claims.py: test_a_required_claim_is_missing",
    "at-verify-typ": "test_procedure.py: test_another_type_is_another_kind_of_token",
    "at-verify-iss": "test_cases_a.py: test_row",
    "at-verify-aud": "test_cases_a.py: test_row",
    "tx-act-decisions": "test_context.py: test_a_context_tells_who_asked_for_what",
    "su-error-code": "test_step_up.py: test_other_challenges_are_no_step_up",
    "su-acr-values": "test_step_up.py: test_the_first_known_level_counts",
    "su-max-age-int": "test_step_up.py: test_a_malformed_age_makes_the_challenge_unusable",
    "su-client-parse": "step_up/test_step_up_client.py: test_a_sign_in_that_meets_half_of_a_demand_is_challenged_again",
    "su-leak": "test_sign_in_rule.py: test_policy_shows_only_to_those_whose_token_passed",
    "su-abuse-loop": "step_up/test_loop_guard.py: test_an_api_that_always_challenges",
    "su-age-check": "test_sign_in_rule.py: test_a_demand_is_judged_alike_before_and_after",
    "br-header": "test_bearer.py: test_a_token_is_taken_out",
    "br-one-method": "test_bearer.py: test_anything_but_one_bearer_token_is_refused",
    "br-no-error-when-none": "test_bearer.py: test_no_credentials_are_missing",
    "br-params-once": "test_challenge.py: test_writing_replaces_what_is_not_permitted",
    "br-status-map": "test_errors.py: test_a_refused_token",
    "ch-scheme-ci": "test_cases_d.py: test_row_as_a_step_up",
    "ch-token-or-quoted": "test_cases_d.py: test_row_as_a_step_up",
    "ch-many": "test_cases_d.py: test_row_as_a_step_up",
    "ch-empty-list": "test_challenge.py: test_a_header_of_100_kilobytes_is_ignored",
    "ca-jti-once": "../issuer/test_cases_e.py: test_e07_5_another_instance_on_the_same_redis",
    "md-issuer-identical": "../issuer/test_provider_keys.py: test_a_document_that_is_not_this_providers_brings_no_keys",
    "prm-location": "test_protected_resource.py: test_where_the_metadata_lies",
    "jws-compact": "test_compact.py: test_what_is_no_compact_token_is_refused",
    "jws-b64-strict": "test_compact.py: test_other_spellings_are_refused",
    "jws-header-dup": "test_cases_a.py: test_row",
    "jws-crit": "test_compact.py: test_critical_parameters_are_refused",
    "jws-alg-exact": "test_cases_a.py: test_row",
    "jws-no-key-headers": "test_cases_a.py: test_row",
    "jws-strict-json": "test_compact.py: test_header_and_payload_are_each_one_strict_object",
    "jws-kid": "test_cases_a.py: test_rows_of_a24_cause_no_fetch",
    "jwt-dup-claims": "test_procedure.py: test_a_claim_that_stands_twice_is_malformed",
    "jwt-unknown-claims": "test_claims.py: test_unknown_claims_and_members_are_ignored",
    "jwt-exp": "test_procedure.py: test_a_time_is_good_up_to_its_edge",
    "jwt-numericdate": "test_claims.py: test_a_required_time_is_a_number",
    "jwt-aud-forms": "test_cases_a.py: test_row",
    "jwt-string-compare": "test_cases_a.py: test_rows_of_a30_are_two_customers",
    "bcp-iss-owns-key": "test_verifiers_use.py: test_a_kid_belongs_to_its_issuer",
    "bcp-kid-untrusted": "test_key_reports.py: test_an_unknown_kid_is_logged_escaped",
    "bcp-ssrf": "test_cases_b.py: test_b12_redirects_are_not_followed",
    "bcp-format-chars": "test_properties.py: test_any_missing_or_added_character_is_noticed",
    "jwks-lenient": "test_jwk.py: test_every_fault_beside_one_good_key",
    "cache-max-age": "test_jwks_cache.py: test_keys_serve_as_long_as_they_are_fresh",
    "cache-no-store": "test_jwks_cache.py: test_keys_serve_as_long_as_they_are_fresh",
    "cache-parse": "test_cache_control.py: test_directives",
    "cache-stale": "test_jwks_cache.py: test_a_failed_fetch_never_replaces_good_keys",
    "jcs-digest": "test_procedure_action.py: test_another_digest_is_refused",
    "rp-atomic": "redis/test_processes.py: test_fifty_at_once_through_two_stores",
    "rp-ttl": "redis/test_claims.py: test_a_record_lives_until_the_token_is_over_and_a_margin_longer",
    "rp-last": "test_verifiers_use.py: test_a_refused_request_does_not_use_a_token_up",
    "rp-fail-closed": "redis/test_cases_c.py: test_c10_errors_of_redis",
    "rp-no-evict": "redis/test_doctor.py: test_c09_an_evicting_server_is_refused_at_start",
    "rp-scope": "redis/test_claims.py: test_the_key_is_a_hash_of_issuer_audience_and_jti",
    "sec-action-bound": "test_procedure_action.py: test_other_arguments_are_refused",
    "tt-separate": "test_procedure.py: test_another_type_is_another_kind_of_token",
    "rs-iss-sub": "test_context.py: test_a_customer_who_is_named_in_the_arguments_is_not_the_customer",
}


@pytest.mark.skipif(not RULES.exists(), reason="the shared folder is not there")
def test_every_rule_for_verifiers_has_its_place():
    """
    No rule of these sides is left out silently, and every test that is named exists.
    """
    with RULES.open(encoding="utf-8", newline="") as file:
        rules = {rule["id"] for rule in csv.DictReader(file) if rule["side"] in SIDES}

    assert set(PLACES) == rules
    for place in PLACES.values():
        file, _, name = place.partition(": ")
        assert f"def {name}(" in (Path(__file__).parent / file).read_text(encoding="utf-8")
