"""
The subcommands of `customer-context` that need the issuer; each module holds one, found through an entry point.
"""
