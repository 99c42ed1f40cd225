"""Parts of scripts/line_transfers.py: structures.py names the data structure of a place in the code; runs.py runs the
engine, as it is and on the cores of the model; prediction.py calibrates the model and compares it with this host;
drawing.py draws the sweep.
"""
