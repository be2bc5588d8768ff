"""What needs no rows: types, errors, results and their words, compiled loops, laws, fits, files, progress."""
