"""Tables of databases: their addresses, which hold no secret, and copies of them at one moment.

address   which table, where, and how addresses are written
moment    copies of tables, all as at one moment; what they held, as a fingerprint
postgres  PostgreSQL, by its ADBC driver
sql       MariaDB, MySQL and files of SQLite, by SQLAlchemy
"""

from discreet.data.databases.address import Address, SomeColumns, is_address, is_sqlite
from discreet.data.databases.moment import copied, fingerprints, names_in, one_moment

__all__ = ["Address", "SomeColumns", "copied", "fingerprints", "is_address", "is_sqlite", "names_in", "one_moment"]
