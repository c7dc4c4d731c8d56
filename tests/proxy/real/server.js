// server.js - node's http server, with what curl asks for: files with ranges, tags and compression; POST is answered with
// what came, PUT keeps it.
//
// Usage: node server.js FOLDER    says "listening on ADDR"
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const path = require('path');
const zlib = require('zlib');

const folder = process.argv[2];
const kept = new Map(); // what was PUT, by path

function find(name) {
    if (kept.has(name)) return kept.get(name);
    const file = path.join(folder, path.basename(name));
    if (!fs.existsSync(file)) return null;
    kept.set(name, fs.readFileSync(file));
    return kept.get(name);
}

function tagOf(body) {
    body.tag = body.tag || '"' + crypto.createHash('sha1').update(body).digest('hex') + '"';
    return body.tag;
}

function answerFile(request, response, body) {
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range || '');

    response.setHeader('ETag', tagOf(body));
    if (request.headers['if-none-match'] === tagOf(body)) {
        response.writeHead(304).end();
    } else if (range) {
        const part = body.subarray(+range[1], +range[2] + 1);

        response.writeHead(206, {'Content-Range': `bytes ${range[1]}-${range[2]}/${body.length}`,
            'Content-Length': part.length}).end(part);
    } else if (/\bgzip\b/.test(request.headers['accept-encoding'] || '')) {
        response.writeHead(200, {'Content-Encoding': 'gzip'}); // of unknown length: in chunks
        const gzip = zlib.createGzip();

        gzip.pipe(response);
        gzip.end(body);
    } else {
        response.writeHead(200, {'Content-Length': body.length}).end(body);
    }
}

const server = http.createServer((request, response) => {
    const name = new URL(request.url, 'http://node').pathname;

    if (request.method === 'GET' || request.method === 'HEAD') {
        const body = find(name);

        if (body === null) response.writeHead(404).end();
        else answerFile(request, response, body);
        return;
    }
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
        const body = Buffer.concat(parts);

        if (request.method === 'PUT') kept.set(name, body);
        response.writeHead(request.method === 'PUT' ? 201 : 200).end(request.method === 'PUT' ? '' : body);
    });
});
server.keepAliveTimeout = 0; // else it closes what lbproxy holds, every five seconds
server.listen(0, '127.0.0.1', () => console.log(`listening on 127.0.0.1:${server.address().port}`));
