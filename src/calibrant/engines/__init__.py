"""Where rows that do not fit in memory are counted: files, databases and clusters."""
