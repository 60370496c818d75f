"""
The `customer-context` command. It exists in every installation and says which extra a subcommand needs.

Subcommands are found through entry points of the group `customer_context.commands`, so that nothing here imports the issuer.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """
    Run the command; exits with 2 when the installation lacks what it needs.
    """
    try:
        from .cli_group import group  # noqa: PLC0415 -- without the extra this import is what fails
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write("customer-context needs the extra cli: pip install 'customer-context[cli]'\n")
        sys.exit(2)
    group(prog_name="customer-context")
