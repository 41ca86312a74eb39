"""Links from the names in the text, such as `XLNetBackbone`, to their pages of the API."""

from docutils import nodes
from public_names import public_names
from sphinx import addnodes


def setup(app):
    app.connect("doctree-read", _link_names)
    return {"parallel_read_safe": True}


def _targets():
    names = [name for names in public_names().values() for name in names]
    targets = {name.full_name: name for name in names}
    # Lower case names are those of arguments as well.
    return targets | {name.name: name for name in names if name.name[0].isupper()}


def _link_names(app, doctree):
    targets = _targets()
    for literal in list(doctree.findall(nodes.literal)):
        name = targets.get(literal.astext().removesuffix("()"))
        parents = (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.desc_signature)
        if name is None or _has_parent(literal, parents) or app.env.docname == name.document:
            continue
        link = addnodes.pending_xref(
            "", refdomain="py", reftype="obj", reftarget=name.full_name, refexplicit=True
        )
        literal.replace_self(link)
        link += literal


def _has_parent(node, kinds):
    while node is not None:
        if isinstance(node, kinds):
            return True
        node = node.parent
    return False
