"""The development stack: everything that `cronq up` starts, shows and stops again."""
