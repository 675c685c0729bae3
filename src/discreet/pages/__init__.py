"""Pages for people: one offline HTML file from text, tables and figures. Nothing here knows what they are about.

page       the blocks and the page
charts     the forms of charts that pages share
study      numbers for machines and a page for people, in one directory
svg        a chart as a picture
plot       curves and bars drawn without a chart engine
bar        one bar made of the parts of a whole
axis       where a number stands on an axis, and which are written beside it
look       colours, dashes and sizes that all pictures share
numbers    how a value is printed
ranked     estimates with intervals as a table that is its own chart
sparkline  a small picture of a series
carried    what a page carries for programs, in its head
"""
