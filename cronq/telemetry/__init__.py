"""What happened? Events become log lines here, and only here."""
