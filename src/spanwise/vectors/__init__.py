"""Word vectors: learned from a corpus, read, written, and looked at."""

from spanwise.vectors.store import Vectors, check_no_vectors, files_of, read_vectors, write_folder, write_vectors

__all__ = ["Vectors", "check_no_vectors", "files_of", "read_vectors", "write_folder", "write_vectors"]
