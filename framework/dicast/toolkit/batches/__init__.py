"""Chat models that answer in batches: calls are collected, sent together, and taken up by a later process after a kill.

A plugin gives a :class:`BatchEndpoint`, which knows the provider's requests, and opens a :class:`BatchModel` with it.

The order of steps makes a kill harmless at any moment:

1. ``batch.intended`` with a random key is in the ledger before the first request. It has the digest of each request and its random words.
2. The key is in the batch's metadata and in the id of each item, so that a later process finds the batch at the endpoint.
3. A later process of the run gets the same requests, under other random words. It matches them by their digests, and puts its own words in place
   of the old ones in the replies.
4. An endpoint need not be idempotent: a batch is created again only after a listing has shown that the endpoint does not have it.
"""

from __future__ import annotations

from .endpoint import BatchEndpoint, EndpointBatch, ItemFault, Unconfirmed, seconds_of
from .model import BatchModel, open_batches

__all__ = ["BatchEndpoint", "BatchModel", "EndpointBatch", "ItemFault", "Unconfirmed", "open_batches", "seconds_of"]
