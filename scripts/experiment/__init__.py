"""Experiments: figures declared in experiments/, planned, run, collected, drawn and compared by scripts/exp.

spec      what a figure file says          planning   the runs that a figure needs on this host
running   runs them, a row per step        data       rows to points, medians and intervals
claims    the paper's claims and ours      drawing    plots
page      report.html                      host_scale the emulated devices' scale
ceiling   what the devices take            origin     hosts and builds that rows come from
listing   the figures in words
"""
