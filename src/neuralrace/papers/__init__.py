"""The papers' figures, one module each, and the ledger of their claims."""
