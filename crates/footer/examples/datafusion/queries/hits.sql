SELECT COUNT(*) FROM hits
SELECT COUNT(*) FROM hits WHERE "AdvEngineID" <> 0
SELECT SUM("AdvEngineID"), COUNT(*), AVG("ResolutionWidth") FROM hits
SELECT MIN("EventDate"), MAX("EventDate") FROM hits
SELECT COUNT(DISTINCT "SearchPhrase") FROM hits
SELECT "RegionID", SUM("AdvEngineID"), COUNT(*) AS c FROM hits GROUP BY "RegionID" ORDER BY c DESC, "RegionID" LIMIT 10
SELECT "UserID" FROM hits WHERE "UserID" = 435090932899640449
