"""Programs that services run in processes of their own. They import nothing of Sluice."""
