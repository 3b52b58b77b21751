"""The steps, one file each: its form in a spec (`Written`) and its effect on rows (`resolve`)."""
