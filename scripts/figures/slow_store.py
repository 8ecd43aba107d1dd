#!/usr/bin/env python3
"""A store with a chosen latency and throughput, to measure against: objects of a folder, over S3's requests.

    scripts/figures/slow_store.py FOLDER --port 9100 --latency 30 --rate 100

Serves FOLDER/BUCKET/KEY as s3://BUCKET/KEY at http://127.0.0.1:9100 (path style), signatures unread. Each
request waits --latency milliseconds; bodies in both directions share --rate megabytes a second. GET and HEAD
with ranges and If-Match, ListObjectsV2, PUT, DELETE of one or several, and uploads in parts. It keeps what it
receives only with --keep. Prints its numbers of requests and bytes when its standard input ends.
"""

import argparse
import asyncio
import os
import re
import sys
import time
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

PIECE = 256 << 10


class Rate:
    """Bytes a second that all transfers share."""

    def __init__(self, bytes_a_second):
        self.rate, self.free = bytes_a_second, 0.0

    async def take(self, count):
        if self.rate:
            now = time.monotonic()
            self.free = max(self.free, now) + count / self.rate
            if self.free - now > 0.002:
                await asyncio.sleep(self.free - now)


class Store:
    def __init__(self, arguments):
        self.folder, self.keep = arguments.folder, arguments.keep
        self.latency, self.rate = arguments.latency / 1000, Rate(arguments.rate * 1e6)
        self.late = arguments.late
        self.requests = self.sent = self.received = 0
        self.uploads = {}

    async def connection(self, reader, writer):
        try:
            while await self.request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        writer.close()

    async def request(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines if line)}
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query, keep_blank_values=True)
        self.requests += 1
        if headers.get("expect"):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        length = int(headers.get("content-length", 0))
        left, kept = length, bytearray()
        while left:
            piece = await reader.read(min(left, PIECE))
            if not piece:
                return False
            await self.rate.take(len(piece))
            self.received += len(piece)
            left -= len(piece)
            if self.keep or method == "POST":
                kept += piece
        # The same requests of each run are late.
        late = self.late and self.requests % round(100 / self.late) == 0
        if self.latency or late:
            await asyncio.sleep(self.latency + (1 if late else 0))
        bucket, _, key = unquote(path).lstrip("/").partition("/")
        file = os.path.join(self.folder, bucket, key)
        if method in ("GET", "HEAD") and (not key or "list-type" in query):
            return await self.xml(writer, self.listed(bucket, query))
        if method in ("GET", "HEAD"):
            return await self.answer(writer, method, file, headers)
        if method == "POST" and "uploads" in query:
            number = str(len(self.uploads) + 1)
            self.uploads[number] = {}
            return await self.xml(writer, f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId></InitiateMultipartUploadResult>")
        if method == "PUT" and "uploadId" in query:
            self.uploads[query["uploadId"][0]][int(query["partNumber"][0])] = bytes(kept)
            return await self.plain(writer, 200, 'ETag: "part"\r\n')
        if method == "POST" and "delete" in query:
            gone = re.findall("<Key>(.*?)</Key>", kept.decode())
            for name in (os.path.join(self.folder, bucket, unescape(name)) for name in gone):
                if os.path.isfile(name):
                    os.remove(name)
            deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in gone)
            return await self.xml(writer, f"<DeleteResult>{deleted}</DeleteResult>")
        if method == "POST":
            parts = self.uploads.pop(query["uploadId"][0], {})
            written = escape(self.write(file, [parts[n] for n in sorted(parts)]))
            return await self.xml(writer, f"<CompleteMultipartUploadResult><ETag>{written}</ETag></CompleteMultipartUploadResult>")
        if method == "PUT":
            return await self.plain(writer, 200, f"ETag: {self.write(file, [kept])}\r\n")
        if method == "DELETE":
            if "uploadId" in query:
                self.uploads.pop(query["uploadId"][0], None)
            elif os.path.isfile(file):
                os.remove(file)
            return await self.plain(writer, 204)
        return await self.plain(writer, 400)

    def write(self, file, parts):
        """Keeps an object, if it is to be kept; its entity tag."""
        if not self.keep:
            return '"whole"'
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "wb") as out:
            out.writelines(parts)
        return tag(file)

    def listed(self, bucket, query):
        prefix = query.get("prefix", [""])[0]
        delimiter = query.get("delimiter", [""])[0]
        root = os.path.join(self.folder, bucket)
        entries, folders = [], set()
        for where, _, names in sorted(os.walk(root)):
            for name in sorted(names):
                full = os.path.join(where, name)
                key = os.path.relpath(full, root)
                if not key.startswith(prefix):
                    continue
                if delimiter and delimiter in key[len(prefix):]:
                    folders.add(prefix + key[len(prefix):].split(delimiter)[0] + delimiter)
                    continue
                entries.append(f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                               f"<ETag>{escape(tag(full))}</ETag><Size>{os.path.getsize(full)}</Size></Contents>")
        below = "".join(f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in sorted(folders))
        return (f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(entries)}</KeyCount>"
                f"<MaxKeys>100000</MaxKeys><IsTruncated>false</IsTruncated>{''.join(entries)}{below}</ListBucketResult>")

    async def answer(self, writer, method, file, headers):
        if not os.path.isfile(file):
            return await self.plain(writer, 404, body=b"" if method == "HEAD" else b"<Error><Code>NoSuchKey</Code></Error>")
        size = os.path.getsize(file)
        start, end, status = 0, size, "200 OK"
        if headers.get("if-match", tag(file)) != tag(file):
            return await self.plain(writer, 412)
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", headers.get("range", ""))
        if wanted:
            first, last = wanted.groups()
            start = int(first) if first else max(0, size - int(last))
            end = min(size, int(last) + 1) if first and last else size
            status = "206 Partial Content"
        head = (f"HTTP/1.1 {status}\r\nContent-Length: {end - start}\r\nETag: {tag(file)}\r\nAccept-Ranges: bytes\r\n"
                "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: application/octet-stream\r\n")
        if wanted:
            head += f"Content-Range: bytes {start}-{end - 1}/{size}\r\n"
        writer.write((head + "\r\n").encode())
        if method == "GET":
            await self.send(writer, file, start, end)
        await writer.drain()
        return True

    async def send(self, writer, file, start, end):
        self.sent += end - start
        with open(file, "rb") as body:
            body.seek(start)
            loop = asyncio.get_running_loop()
            piece = PIECE if self.rate.rate else end - start
            while start < end:
                count = min(piece, end - start)
                await self.rate.take(count)
                await writer.drain()
                try:
                    await loop.sendfile(writer.transport, body, start, count)
                except NotImplementedError:  # by uvloop
                    writer.write(body.read(count))
                start += count

    async def xml(self, writer, text):
        return await self.plain(writer, 200, "Content-Type: application/xml\r\n", text.encode())

    async def plain(self, writer, status, more="", body=b""):
        writer.write(f"HTTP/1.1 {status} -\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        return True


def tag(file):
    found = os.stat(file)
    return f'"{found.st_mtime_ns:x}-{found.st_size:x}"'


async def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder")
    options.add_argument("--port", type=int, default=9100)
    options.add_argument("--latency", type=float, default=0, help="milliseconds before each answer")
    options.add_argument("--late", type=float, default=0, help="percent of requests that wait a second more")
    options.add_argument("--rate", type=float, default=0, help="megabytes a second of all bodies; 0 is unlimited")
    options.add_argument("--keep", action="store_true", help="keep objects that are written")
    store = Store(options.parse_args())
    await asyncio.start_server(store.connection, "127.0.0.1", options.parse_args().port, limit=1 << 20)
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(f"{store.requests} requests, {store.sent} bytes sent, {store.received} bytes received", flush=True)


try:  # The package uvloop, if it is there, serves some times as many requests a second.
    import uvloop

    uvloop.run(main())
except ImportError:
    asyncio.run(main())
