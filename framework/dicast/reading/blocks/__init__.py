"""Columns that ledgers of the lines of format 4 store next to their blocks: their form, and the merge of the columns of many blocks.

A ledger makes the columns of a block with :func:`.making.columns_of`, and stores :meth:`.block_columns.BlockColumns.packed`. Its readers pass the stored columns of all blocks to
:mod:`.merging`. Columns follow from the lines, so ``verify`` makes them again.
"""
