from array import array

__version__: str

def paired_bootstrap(
    baseline: array[float],
    candidate: array[float],
    *,
    resamples: int,
    seed: bytes,
    confidence_level: float,
    threads: int | None = None,
    level: str | None = None,
) -> tuple[float, float, float, int, int] | None: ...
def levels() -> list[str]: ...
