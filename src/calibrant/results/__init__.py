"""The frozen result types: documented fields, a sentence or a table as text, HTML for notebooks, a dict for files.

They stand in modules named like those that make them; `base` is what all of them can do.
"""
