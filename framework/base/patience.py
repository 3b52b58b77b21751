"""Time limits in seconds: each wait for the same thing has one name.

A command with a person at the terminal gives up soon; a batch, which would fail, waits longer.
"""


def growing(failures: int, first: float, longest: float) -> float:
    """The pause before another try of what has failed so often in a row: each is twice as long as the last, up to the longest."""
    return min(longest, first * 2.0 ** min(failures - 1, 16))


CONNECTING = 2.0  # for a connection: an address that answers at all does so in milliseconds

KAFKA = 10.0  # if nothing can be done or shown without Kafka: a partition without a leader gets one in some seconds
KAFKA_WATCHED = 3.0  # if a person waits, and something else can be shown, or the request repeated
KAFKA_GLANCE = 1.5  # for a request that is repeated every two seconds
MAIL = 20.0  # for a mail server to take a mail
WEBHOOK = 20.0  # for a webhook's answer
NOTICE_AGAIN = (1.0, 5.0)  # between the tries to send a mail, or to call a webhook
CATALOG = 20.0  # for an answer of a catalog that is a server
CATALOG_FILE = 30.0  # for another program's commit to a catalog in a file
CATALOG_AGAIN = (0.2, 1.0, 3.0)  # between the tries where it is busy
STORE = 20.0  # for an object store's answers
SECRETS_AGAIN = 15.0  # until a store of secrets that did not answer is asked again, while kept values are used
KAFKA_TAKES = 30.0  # for Kafka to accept a message or a new topic: brokers and clients retry by themselves
TOPIC_DELETED = 15.0  # for a topic to disappear: brokers delete it after they have answered

REGISTRY = 3.0  # if its last answer is cached, or not everything depends on it
REGISTRY_NEEDED = 5.0  # if a command can do nothing without it
REGISTRY_FOR_BATCH = 30.0  # if a batch fails without it

DOWNLOAD = 30.0  # without a word or a byte of what is downloaded
STARTING = 60.0  # until a server of this machine must answer: a JVM on a busy machine takes twenty
DAGSTER_STARTING = 120.0  # until Dagster must answer: it loads the specs in several processes
ENDING = 20.0  # until processes that were asked to end are killed: Kafka writes its logs first
KILLED = 5.0  # until a killed process counts as stuck
STUCK = 600.0  # until a program that works for minutes counts as stuck
