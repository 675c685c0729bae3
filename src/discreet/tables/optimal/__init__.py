"""The least noise that a definition allows: linear programmes, floors in closed form, and laws solved from them.

limits     the least mean error that any noise can have under a definition
two_sizes  the least error of noise that depends on the two largest establishments of a cell
ladder     a table of integer noise for small cells, checked inequality by inequality
"""
