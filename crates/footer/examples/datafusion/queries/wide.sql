SELECT COUNT(*) FROM t
SELECT SUM(column_0), SUM(column_5000), SUM(column_9999) FROM t
SELECT column_1, column_9998 FROM t WHERE column_4321 > 0.5 ORDER BY column_1 LIMIT 10
