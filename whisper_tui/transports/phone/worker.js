// Keeps the shell of the page, so that it opens without a connection and says so. Never a call, and no answer of /api.
'use strict'

const CACHE = 'shell'
const SHELL = ['/', '/page.js', '/page.css', '/icon.svg', '/manifest.webmanifest']

self.addEventListener('install', event => {
  event.waitUntil(caches.open(CACHE).then(cache => cache.addAll(SHELL)).then(() => self.skipWaiting()))
})

self.addEventListener('activate', event => event.waitUntil(self.clients.claim()))

self.addEventListener('fetch', event => {
  const url = new URL(event.request.url)
  if (event.request.method !== 'GET' || url.origin !== self.location.origin || !SHELL.includes(url.pathname)) return
  event.respondWith(fresh(event.request, url.pathname))
})

// The network comes first: a shell of an older version would not understand the supervisor.
async function fresh (request, path) {
  const cache = await caches.open(CACHE)
  try {
    const answer = await fetch(request)
    if (answer.ok) await cache.put(path, answer.clone())
    return answer
  } catch (error) {
    const kept = await cache.match(path)
    if (kept === undefined) throw error
    return kept
  }
}
