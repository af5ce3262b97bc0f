// Keeps the shell of the page, so that it opens without a connection and says so: never a call, and no answer of /api.
// And says, when a push wakes it, how many calls wait.
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

// A push is empty. What is behind it is asked for at the page's own server, and is a number.
self.addEventListener('push', event => event.waitUntil(
  waiting().then(number => self.registration.showNotification('whisper_tui', {
    body: number === null ? 'Calls wait for you' : number === 0 ? 'Nothing waits any more' : number === 1 ? '1 call waits' : `${number} calls wait`,
    tag: 'calls', // one notification, which the next one replaces
    renotify: number !== 0,
    silent: number === 0,
    icon: '/icon.svg'
  }))
))

// null: this phone does not reach the server, or is a paired one no more.
async function waiting () {
  try {
    const answer = await fetch('/api/phone_count', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{}',
      cache: 'no-store',
      credentials: 'same-origin',
      redirect: 'error',
      signal: AbortSignal.timeout(10_000)
    })
    return answer.ok ? Number(await answer.json()) : null
  } catch {
    return null
  }
}

self.addEventListener('notificationclick', event => {
  event.notification.close()
  event.waitUntil(self.clients.matchAll({ type: 'window' }).then(pages => pages.length > 0 ? pages[0].focus() : self.clients.openWindow('/')))
})
