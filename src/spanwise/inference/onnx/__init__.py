"""Models as ONNX graphs: ``export`` (with torch) writes a folder, ``predictor`` (without) puts it to work."""
