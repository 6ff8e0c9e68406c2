"""Word vectors: training, files, and nearest neighbours."""

from spanwise.vectors.store import Vectors, check_no_vectors, read_vectors, source_files, write_folder, write_vectors

__all__ = ["Vectors", "check_no_vectors", "read_vectors", "source_files", "write_folder", "write_vectors"]
