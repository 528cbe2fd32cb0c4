"""The files of the package import each other in one direction only."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import groundkit

PACKAGE = Path(groundkit.__file__).parent


def read_imports() -> dict[str, set[str]]:
    """List what each file imports of the package, also inside functions and for type checkers only."""
    files = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ("groundkit", *path.relative_to(PACKAGE).with_suffix("").parts)
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    graph = {}
    for module, path in files.items():
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path} has a relative import"
                # What is imported from a package is a file of it, or a name of its `__init__`.
                names |= {
                    name if (name := f"{node.module}.{alias.name}") in files else str(node.module)
                    for alias in node.names
                }
        graph[module] = names & files.keys() - {module}
    return graph


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = read_imports()
    assert len(graph) > 20
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(reversed(error.args[1]))) from None


def test_the_graph_sees_imports_for_type_checkers_and_inside_functions() -> None:
    graph = read_imports()
    assert {"groundkit.errors", "groundkit.evals.sweep.scores"} <= graph["groundkit.evals.sweep.comparison"]
    assert "groundkit._native" not in graph
