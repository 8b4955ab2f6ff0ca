"""`python -m garage`: the command line."""

from garage.serve.cli import main

if __name__ == "__main__":
    main()
