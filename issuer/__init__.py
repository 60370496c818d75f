"""
The identity service: it mints customer context tokens, each signed for one call, and publishes the keys that prove them.

It may use `keys` and `verifier`, and nothing of ours uses it. The service needs the extra `issuer` of the distribution.
"""
