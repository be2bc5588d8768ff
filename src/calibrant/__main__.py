"""``python -m calibrant`` is the command line of calibrant."""

from calibrant.cli import main

if __name__ == "__main__":
    main(prog_name="calibrant")
