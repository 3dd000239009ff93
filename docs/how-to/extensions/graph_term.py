"""`isolates`, a term of random graphs: how many nodes have no tie."""

from typing import ClassVar

from dfdbayes.families.graph.terms import Structure, term


@term
class Isolates(Structure):
    """Nodes without ties."""

    name: ClassVar[str] = "isolates"
    directed: ClassVar[bool | None] = False
    when: ClassVar[str] = "per node that it leaves without a tie"

    def statistic(self, whole):
        return (whole.sent == 0).sum(axis=-1)

    def change(self, at):
        return -1 * (at.sent_i == 0) - 1 * (at.sent_j == 0)
