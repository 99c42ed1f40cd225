"""Experiments and the main job, declared in experiments/: planned, run, collected, drawn and reported.

spec      what a figure file says          planning      the runs that a figure needs on this host
cells     those of the main job            cell_runs     runs them, a row per step
running   runs figures, a row per step     data          rows to points, medians and intervals
claims    the paper's claims and ours      host_scale    the emulated devices' scale
ceiling   what the devices take            origin        hosts and builds that rows come from
captions  what a plot says of its rows     listing       the figures in words
style     one look for all plots           drawing       plots of figures; bars: of the main job
records   commands to rows, rows to files  stats         medians, spreads, shares, intervals
summary   the main job's rows to figures   comparison    of two results
page      the parts of a report.html       figures_page  that of figures; cells_page: of the main job
"""
