"""The program for `spark-submit`: the command line of Sluice, in a driver that Spark has started (`sluice plan --spark-submit`)."""

from framework.host.cli import main

if __name__ == "__main__":
    main()
