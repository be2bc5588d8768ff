"""``python -m calibrant`` is the command line of calibrant."""

from calibrant.cli import run

if __name__ == "__main__":
    run()
