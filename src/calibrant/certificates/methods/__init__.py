"""How limits are found: one module per method, each with one object, all of them listed in `registry`."""
