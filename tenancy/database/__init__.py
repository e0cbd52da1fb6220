"""The only place that opens connections to Postgres.

``tenant``   the tenant door: transactions bound to one user
``crossing`` the cross-user door: queue and leases, under the dispatch role
``signals``  LISTEN and NOTIFY: hints for speed, with opaque ids only
``roles``    what each role must be; asserted at start-up
"""
