-- Closes a day of the till. Run by whoever holds the lock "till":
--   quorate lock till -- psql -v ON_ERROR_STOP=1 -v day=2026-11-02 -f close_day.sql
\getenv fence QUORATE_FENCE
BEGIN;
-- Changes no row, and so returns none, if a later holder was here: \gset then fails, and psql ends with 3.
INSERT INTO quorate_fence AS known (name, fence) VALUES ('till', :'fence')
    ON CONFLICT (name) DO UPDATE SET fence = excluded.fence WHERE known.fence <= excluded.fence
    RETURNING fence AS admitted \gset
UPDATE days SET total = (SELECT sum(amount) FROM sales WHERE sales.day = days.day) WHERE day = :'day';
COMMIT;
