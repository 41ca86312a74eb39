"""ONNX and LiteRT files for CPUs and phones, which take token ids: `keras_xlnet.serving.export`.

Depends on models and preprocessors only. The runtimes that read the files need neither Keras nor
TensorFlow.
"""
