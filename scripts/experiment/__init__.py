"""All that is measured and reported: figures, the main job and the overview, declared in experiments/.

spec      what a figure file says          planning      the runs that a figure needs on this host
running   runs a plan, a row per step      results       a folder of rows: what it lacks, is run
cells     the main job's, and their steps  cell_runs     runs them, a row per step
records   commands to rows, rows to files  stats         medians, spreads, shares, intervals
data      a figure's rows to points        summary       the main job's rows to figures and a table
overview  plan and tables of the overview  comparison    of two results
claims    the paper's claims and ours      captions      what a plot says of its rows
style     one look for all plots           drawing       plots of figures; bars: of the main job
formula   a figure's parts from metrics
page      the parts of a report.html       figures_page  that of figures; cells_page: of the main job
ceiling   what the devices take            host_scale    the emulated devices' scale
origin    hosts and builds of rows         listing       the figures in words; markdown: tables
"""
