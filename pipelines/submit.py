"""What `spark-submit` runs: the command line of Sluice, in a driver that Spark has started. `sluice plan --spark-submit` shows how."""

from framework.cli import main

if __name__ == "__main__":
    main()
