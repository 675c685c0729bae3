"""Pages and charts for people: one offline HTML file from text, tables and figures.

`page` holds the blocks and the page, `charts` the forms that studies share, `numbers` how a value is printed and
`svg` how a chart becomes a picture. Nothing here computes a statistic or draws noise.
"""
