"""What goes wrong with publishing."""


class PublishFailed(Exception):
    """The broker did not confirm the batch: all of it has to be sent again."""

    def __init__(self, cause: BaseException, broker: str) -> None:
        super().__init__(f"the broker at {broker}: {str(cause) or type(cause).__name__}")


class Oversized(Exception):
    """The job has more arguments than a message may carry."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"its arguments are {size} bytes as JSON, over the limit of {limit} (CRONQ_MAX_PAYLOAD_BYTES); "
            "store them elsewhere and pass a reference"
        )
