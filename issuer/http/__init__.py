"""
The HTTP face of the issuer: one module per route family, each a function that builds its handlers from what it is given.

Nothing here decides who may have a token; it carries bytes in and answers out. URLs come from configuration alone (D3).
"""
