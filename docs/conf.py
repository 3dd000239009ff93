"""How the documentation is built: `make docs`. Nothing is fetched, and every warning is an error."""

import os
from pathlib import Path

from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.docutils import nodes

import dfdbayes

# A second build compiles nothing anew.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent / "_build" / "compiled"))
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # of progress bars that no page shows
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

project = "dfdbayes"
author = "the dfdbayes authors"
version = release = dfdbayes.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "studies"]
suppress_warnings = ["ref.python"]  # a word such as size may be an attribute of several classes

# Tutorials run while the pages are built; an error in one of them ends the build.
nb_execution_mode = "auto"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_output_stderr = "remove"  # warnings name the machine they were raised on; what they say, the answers say
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types stand in the docstrings
autodoc_default_options = {"members": True}
default_role = "py:obj"
napoleon_google_docstring = False
napoleon_use_rtype = False
add_module_names = False
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = "dfdbayes"
html_static_path = ["_static"]
html_css_files = ["extra.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_math_renderer = "mathml"
templates_path: list[str] = []


TITLES = {  # of the tables, which the studies write
    "tables/coverage": "Table: coverage of every combination",
    "tables/real-tables": "Table: real tables with no options",
    "tables/efficiency": "Table: efficiency of the losses",
    "tables/robustness": "Table: robustness of the losses",
    "tables/categories": "Table: neighbours of unordered labels",
}


def _titled(app, name: str, source: list[str]) -> None:
    if name in TITLES:
        source[0] = f"# {TITLES[name]}\n\n{source[0]}"


def _inline(self, node: nodes.math) -> None:
    self.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _block(self, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app) -> None:
    """Formulas as MathML, which browsers show without a script; titles for the tables."""
    app.connect("source-read", _titled)
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
