"""The one thing that goes wrong with a publisher."""


class PublishFailed(Exception):
    """The broker did not confirm the batch: all of it has to be sent again."""

    def __init__(self, cause: BaseException, broker: str) -> None:
        super().__init__(f"the broker at {broker}: {str(cause) or type(cause).__name__}")
