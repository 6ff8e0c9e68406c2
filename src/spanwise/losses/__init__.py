"""Loss functions of scores and gold, for any head.

Which loss fits depends on what a head decides:

- One type or none for each span: ``smoothing.soft_cross_entropy``, with the targets of
  ``smooth_boundaries``. Use it for heads with a softmax, such as ``Biaffine`` and ``Grid``.
- Each type separately, so that a span can have several: ``imbalance.class_imbalance``, which needs no
  sampled negatives and has its threshold at 0 (``GlobalPointer``). ``imbalance.binary_cross_entropy``
  is the usual alternative, with the same arguments.
- Whether a span is kept, and where its boundaries are: ``focal.focal`` and ``focal.boundary_loss``, for
  heads of two stages (``LocateLabel``).

``partial`` explains the loss of spans that are not annotated completely, ``teaching`` the targets that
other models give.
"""
