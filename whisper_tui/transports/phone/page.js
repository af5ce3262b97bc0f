// The page of a paired phone. Whatever it shows of a call is text, never markup; a yes is signed by the phone's passkey.
'use strict'

const HOLD_MS = 800
const RETRY_MS = [1000, 2000, 4000, 8000]
const SILENT_MS = 20_000 // a push service without a connection is never done
const REASONS = ['Not now.', 'Too risky: find a safer way.', 'Explain first why this is needed.']
const SEVERE = /^Severe: /
const MARKS = { new: '+', changed: '~', deleted: '−', moved: '→' }
// Characters that would not be seen, or that move others. The supervisor has escaped them already; this is the second look.
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0]/u

const byId = id => document.getElementById(id)
const [header, main, footer, offline, spoken] = ['header', 'main', 'footer', 'offline', 'spoken'].map(byId)

const state = {
  device: null,
  calls: null,
  call: null, // the call on the screen
  answer: null, // what became of the decision that this phone has taken about it
  note: null, // what happened to the call meanwhile
  read: false, // whether its end was on the screen
  denies: false, // whether the reasons for a denial are open
  busy: false,
  pushes: '', // '' if this browser has none, or else 'on', 'off' or 'denied'
  drawn: '', // the list or the card on the screen
  ahead: 0 // seconds by which the supervisor's clock is ahead
}

// ---- Elements -------------------------------------------------------------------------------------------------------

function make (tag, options = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(options)) {
    if (name === 'class') element.className = value
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value)
    else if (value !== false && value !== undefined) element.setAttribute(name, value === true ? '' : value)
  }
  element.append(...children.filter(child => child !== null && child !== undefined && child !== ''))
  return element
}

// Text of others: hidden characters become visible.
function data (text, tag = 'span', classes = '') {
  const element = make(tag, { class: `data ${classes}`.trim() })
  for (const piece of String(text).split(new RegExp(`(${HIDDEN.source})`, 'u'))) {
    if (piece === '') continue
    element.append(HIDDEN.test(piece)
      ? make('span', { class: 'hidden' }, `U+${piece.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`)
      : piece)
  }
  return element
}

function section (name, ...children) {
  return make('section', {}, make('h2', { class: 'label' }, name), ...children)
}

function show (title, content, actions = []) {
  header.replaceChildren(...title)
  main.replaceChildren(...content.filter(Boolean))
  footer.replaceChildren(...actions.filter(Boolean))
}

function title (text, ...more) {
  return [make('h1', {}, text), ...more]
}

// A message of the supervisor as a sentence.
function sentence (text) {
  return text && text[0].toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? '' : '.')
}

function note (kind, message, hint) {
  return make('p', { class: `note ${kind}`, role: 'alert' }, data(sentence(message)), hint ? data(sentence(hint), 'span', 'hint') : null)
}

function age (since) {
  const seconds = Math.max(0, Math.round(Date.now() / 1000 + state.ahead - since))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`
  return `${Math.floor(seconds / 86400)} d`
}

const aged = since => make('span', { class: 'muted age', 'data-since': since }, age(since))

// The first full minute from a time on, written as the desk does it.
const minuteFrom = at => new Date((at + 59) * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
const calls = number => number === 1 ? '1 call waits' : `${number} calls wait`

// ---- The supervisor -------------------------------------------------------------------------------------------------

class Problem extends Error {
  constructor (kind, message, hint = '') {
    super(message)
    this.kind = kind
    this.hint = hint
  }
}

async function ask (operation, body = {}, signal = undefined) {
  let answer, content
  try {
    answer = await fetch(`/api/${operation}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
      cache: 'no-store',
      credentials: 'same-origin',
      redirect: 'error',
      signal
    })
    content = await answer.json()
  } catch (error) {
    if (error.name === 'AbortError') throw error
    throw new Problem('offline', 'This phone does not reach the desk. Nothing was decided.')
  }
  if (answer.ok) return content
  const told = content.error ?? {}
  throw new Problem(told.kind ?? 'error', told.message ?? `The desk answered ${answer.status}.`, told.hint)
}

const isGone = problem => ['not_paired', 'unknown_phone'].includes(problem.kind)

function speak (text) { spoken.textContent = text }

function connection (problem) {
  const words = problem === null ? ''
    : problem.kind === 'offline' ? 'Offline: this page does not reach the desk, and tries again.'
      : `${sentence(problem.message)} This page tries again.`
  offline.hidden = words === ''
  if (offline.textContent !== words) offline.textContent = words
}

// ---- Passkeys -------------------------------------------------------------------------------------------------------
// Phones of two years ago know neither parseRequestOptionsFromJSON nor toJSON, so both are done here.

function bytes (text) {
  const plain = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(plain, letter => letter.charCodeAt(0))
}

function base64url (buffer) {
  const plain = String.fromCharCode(...new Uint8Array(buffer))
  return btoa(plain).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

const withBytes = credentials => (credentials ?? []).map(one => ({ ...one, id: bytes(one.id) }))

function credentialJson (credential, response) {
  return JSON.stringify({
    id: credential.id,
    rawId: base64url(credential.rawId),
    type: credential.type,
    authenticatorAttachment: credential.authenticatorAttachment ?? undefined,
    clientExtensionResults: credential.getClientExtensionResults(),
    response: { clientDataJSON: base64url(credential.response.clientDataJSON), ...response(credential.response) }
  })
}

async function newKey (options) {
  const credential = await passkey('create', {
    ...options,
    challenge: bytes(options.challenge),
    user: { ...options.user, id: bytes(options.user.id) },
    excludeCredentials: withBytes(options.excludeCredentials)
  })
  return credentialJson(credential, response => ({
    attestationObject: base64url(response.attestationObject),
    transports: response.getTransports?.() ?? []
  }))
}

async function signature (options) {
  const credential = await passkey('get', {
    ...options, challenge: bytes(options.challenge), allowCredentials: withBytes(options.allowCredentials)
  })
  return credentialJson(credential, response => ({
    authenticatorData: base64url(response.authenticatorData),
    signature: base64url(response.signature),
    userHandle: response.userHandle ? base64url(response.userHandle) : undefined
  }))
}

async function passkey (verb, publicKey) {
  if (!window.isSecureContext || !navigator.credentials || !window.PublicKeyCredential) {
    throw new Problem('passkey', 'This browser offers no passkeys here.', 'They need https, and a browser that knows them.')
  }
  try {
    return await navigator.credentials[verb]({ publicKey })
  } catch (error) {
    throw new Problem('passkey', PASSKEY_PROBLEMS[error.name] ?? `The passkey could not be used (${error.name}).`,
      'Nothing was decided. Try again.')
  }
}

const PASSKEY_PROBLEMS = {
  NotAllowedError: 'The phone did not confirm that it is you: it was cancelled, took too long, or cannot do so here.',
  InvalidStateError: 'This phone is paired already.',
  SecurityError: 'Passkeys do not work under the name by which this page is open.',
  NotSupportedError: 'This phone cannot make a passkey of the kind that is needed.'
}

// ---- Signing in, and pairing ----------------------------------------------------------------------------------------

function deviceName () {
  const known = ['iPhone', 'iPad', 'Android', 'Macintosh', 'Windows', 'CrOS', 'Linux']
  const found = known.find(name => navigator.userAgent.includes(name))
  return { Macintosh: 'Mac', CrOS: 'Chromebook' }[found] ?? found ?? 'phone'
}

function showSignIn (problem = null) {
  const button = make('button', { class: 'main-button', id: 'sign-in', onclick: () => signIn(button) }, 'Sign in with the passkey')
  const other = make('button', { class: 'center', id: 'to-pair', onclick: () => showPairing() }, 'Pair this phone')
  show(title('whisper_tui'), [
    make('p', { class: 'big' }, 'Sign in'),
    make('p', {}, 'A phone that is paired signs in with its passkey. It stays paired as it was.'),
    problem && note('bad', problem.message, problem.hint)
  ], [make('div', { class: 'stack' }, button, other)])
}

async function signIn (button) {
  button.disabled = true
  try {
    const { nonce, options } = await ask('phone_sign_in_begin')
    state.device = await ask('phone_sign_in', { nonce, assertion: await signature(options) })
  } catch (problem) {
    return showSignIn(problem)
  }
  await begin()
}

function showPairing (problem = null) {
  const code = make('input', { id: 'code', autocomplete: 'off', autocapitalize: 'characters', spellcheck: 'false', maxlength: 40 })
  code.value = location.pathname === '/pair' ? decodeURIComponent(location.hash.slice(1)) : ''
  const name = make('input', { id: 'name', autocomplete: 'off', maxlength: 40 })
  name.value = deviceName()
  const button = make('button', { class: 'main-button', id: 'pair' }, 'Pair this phone')
  button.addEventListener('click', () => pair(code.value.trim(), name.value.trim() || deviceName(), button))
  show(title('whisper_tui'), [
    make('p', { class: 'big' }, 'Pair this phone'),
    make('p', {}, 'It makes a passkey, which stays on this phone or in its account. Then the desk asks once more.'),
    problem && note('bad', problem.message, problem.hint),
    make('label', { class: 'label', for: 'code' }, 'Code that the desk shows'), code,
    make('label', { class: 'label', for: 'name' }, 'Name of this phone, as the desk will show it'), name,
    make('p', { class: 'plain muted' }, 'No code? At the desk, run ', data('whisper-tui phone', 'span', 'mono'), ' and scan what it shows.')
  ], [make('div', { class: 'stack' }, button)])
}

async function pair (code, name, button) {
  if (code === '') return showPairing(new Problem('code', 'The code is missing.'))
  button.disabled = true
  try {
    const registration = await ask('phone_pair_begin', { code, name })
    state.device = await ask('phone_pair', { code, name, attestation: await newKey(registration.options) })
    history.replaceState(null, '', '/')
  } catch (problem) {
    return showPairing(problem)
  }
  await begin()
}

function showUnconfirmed () {
  show(title('whisper_tui'), [
    make('p', { class: 'big', id: 'unconfirmed' }, 'Now confirm it at the desk'),
    make('p', {}, 'The desk asks whether to add ', data(state.device.name, 'strong'), ' and shows these words for its key:'),
    wordsBox(state.device.words, 'If the desk shows other words, refuse it there.')
  ])
}

function wordsBox (words, text) {
  return make('section', { class: 'words-box' }, make('ol', {}, ...words.map(word => data(word, 'li'))), make('p', {}, text))
}

// ---- The list -------------------------------------------------------------------------------------------------------

function showList () {
  const { rows, more } = state.calls
  const waits = state.device.may_approve_from > Date.now() / 1000 + state.ahead
  const drawn = JSON.stringify([rows, more, state.note, waits, state.pushes])
  if (main.querySelector('.rows') !== null && drawn === state.drawn) return
  state.drawn = drawn
  const count = rows.length + more
  document.title = count ? `${calls(count)} · whisper_tui` : 'whisper_tui'
  show(
    [make('h1', {}, 'Waiting for you'), make('span', { class: 'count' }, String(count))],
    [
      waits && make('p', { class: 'note' }, `This phone may deny and set aside now, and approve from ${minuteFrom(state.device.may_approve_from)} on.`),
      state.note && note(state.note.kind, state.note.message, state.note.hint),
      count === 0 && make('p', { class: 'big' }, 'Nothing waits'),
      count === 0 && make('p', { class: 'muted' }, 'What an agent asks appears here.'),
      make('ul', { class: 'rows' }, ...rows.map(row)),
      more > 0 && make('p', { class: 'plain muted' }, `${more} more at the desk.`),
      pushes()
    ]
  )
}

function pushes () {
  if (state.pushes === '') return null
  if (state.pushes === 'denied') return make('p', { class: 'plain muted' }, 'Notifications of this page are blocked in the settings of this browser.')
  const on = state.pushes === 'on'
  return make('button', { class: 'plain quiet', id: 'pushes', onclick: event => switchPushes(event.target, !on) }, on ? 'Notify this phone no more' : 'Notify this phone when calls wait')
}

function row (call) {
  const grade = call.severe ? '▲▲ ' : call.careful ? '▲ ' : ''
  const where = [call.session, call.place && `at ${call.place}`].filter(Boolean).join(' · ')
  const since = call.yes_until !== null ? make('span', { class: 'yes' }, '✔ yes given')
    : make('span', {}, call.aside ? 'set aside · ' : '', aged(call.waiting_since))
  return make('li', { class: call.severe ? 'severe' : '' }, make('button', { onclick: () => { location.hash = `#call/${call.id}` }, 'data-call': call.id },
    data(call.command, 'span', 'command mono'),
    data(grade + sentence(call.verdict), 'span', 'verdict'),
    make('span', { class: 'about' }, data(where), since)))
}

// ---- Pushes ---------------------------------------------------------------------------------------------------------

// Whoever removes the worker or this browser's subscription is without pushes; the desk forgets the address then.
async function lookAtPushes () {
  const worker = await navigator.serviceWorker?.ready
  if (!worker?.pushManager || !window.Notification) return
  const mine = await worker.pushManager.getSubscription()
  const { endpoint } = await ask('phone_pushing')
  state.pushes = Notification.permission === 'denied' ? 'denied' : mine !== null && mine.endpoint === endpoint ? 'on' : 'off'
  if (state.calls !== null && shownId() === null) showList()
}

async function switchPushes (button, on) {
  button.disabled = true
  state.note = null
  try {
    // Phones ask only right after the tap.
    if (on && await Notification.requestPermission() !== 'granted') return await lookAtPushes()
    const { pushManager } = await navigator.serviceWorker.ready
    const { key } = await ask('phone_pushing')
    // One for another key would be in the way.
    await (await pushManager.getSubscription())?.unsubscribe()
    const made = on ? await Promise.race([pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(key) }), silence()]) : null
    await ask('phone_push_to', { endpoint: made?.endpoint ?? '' })
    await lookAtPushes()
  } catch (problem) {
    state.note = { kind: 'bad', message: problem instanceof Problem ? problem.message : `This browser takes no pushes (${problem.name}).`, hint: problem.hint }
    state.drawn = ''
    if (state.calls !== null && shownId() === null) showList()
  }
}

const silence = () => pause(SILENT_MS).then(() => { throw new Problem('push', 'The push service of this browser does not answer.', 'Try again later.') })

// What the notifications until now have said is on the screen now.
async function closeNotifications () {
  const now = Date.now()
  const worker = await navigator.serviceWorker?.ready
  for (const shown of await worker?.getNotifications?.({ tag: 'calls' }) ?? []) if (!(shown.timestamp > now)) shown.close()
}

// Of a phone that is a paired one no more.
async function endPushes () {
  const worker = await navigator.serviceWorker?.getRegistration()
  await (await worker?.pushManager?.getSubscription())?.unsubscribe()
}

// ---- The card -------------------------------------------------------------------------------------------------------

function showCall () {
  const call = state.call
  state.drawn = content(call)
  document.title = `Call ${call.id} · whisper_tui`
  // The line of the verdict has the worst risk already.
  const risks = call.risks.filter(risk => !call.verdict.startsWith(risk.replace(SEVERE, '')))
  const end = make('p', { id: 'end', class: 'plain' })
  show(
    [make('button', { class: 'back', onclick: () => { location.hash = '' }, 'aria-label': 'All waiting calls' }, '‹ All'),
      make('h1', {}, `Call ${call.id}`), aged(call.waiting_since)],
    [
      state.note && note(state.note.kind, state.note.message, state.note.hint),
      make('p', { class: 'verdict-line' }, badge(call), data(sentence(call.verdict))),
      data(call.command, 'pre', 'command mono'),
      !call.whole && note('bad', 'The command is longer than what is shown.'),
      make('p', { class: 'asked' },
        data(call.session, 'span', 'name'),
        make('span', { class: 'muted' }, call.agent ? data(` · ${call.agent}`) : '', ' in ', data(call.directory, 'span', 'mono'), call.place ? data(` at ${call.place}`) : '', call.tool ? data(` · ${call.tool}`) : ''),
        call.description ? data(`“${call.description}”`, 'span', 'words') : ''),
      risks.length > 0 && section('Risks', make('ul', { class: 'risks' }, ...risks.map(risk => SEVERE.test(risk) ? data(sentence(risk.replace(SEVERE, '')), 'li', 'severe') : data(sentence(risk), 'li')))),
      call.effects.length > 0 && section('Changes', effects(call.effects, call.directory)),
      call.hosts.length > 0 && section('Hosts', make('ul', { class: 'chips hosts' }, ...call.hosts.map(host => data(host, 'li', 'mono')))),
      call.other_effects.length > 0 && section(call.effects.length + call.hosts.length > 0 ? 'Also' : 'Effects', make('ul', { class: 'others' }, ...call.other_effects.map(effect => data(effect, 'li')))),
      call.undo && section('Undo', data(sentence(call.undo), 'p')),
      ...preview(call.preview),
      wordsBox(call.words, 'The desk shows the same four words for what you see here. Other words: do not approve.'),
      end
    ]
  )
  const seen = new IntersectionObserver(entries => {
    if (!entries.some(entry => entry.isIntersecting)) return
    seen.disconnect()
    if (state.call?.id !== call.id || state.call.seen !== call.seen || state.read) return
    state.read = true
    showActions()
  }, { root: main })
  if (!state.read) seen.observe(end)
  showActions()
}

function promise (call) {
  if (call.may.includes('apply')) return 'To apply makes these changes and no others. To run it again may make others.'
  return call.may.includes('approve') ? 'What you see is what will run.' : ''
}

function badge (call) {
  if (call.severe) return make('span', { class: 'badge severe' }, '▲▲ severe')
  if (call.careful ?? call.risks.length > 0) return make('span', { class: 'badge careful' }, '▲ careful')
  return make('span', { class: 'badge' }, 'not flagged')
}

// Paths below the directory of the command, which is shown above them, without it.
function below (path, directory) {
  const start = `${directory.replace(/\/$/, '')}/`
  return path.startsWith(start) && path.length > start.length ? path.slice(start.length) : path
}

function effects (found, directory) {
  const most = Math.max(1, ...found.map(effect => (effect.added ?? 0) + (effect.removed ?? 0)))
  return make('ul', { class: 'effects' }, ...found.map(effect => make('li', { class: effect.mark },
    make('span', { class: 'mark', role: 'img', 'aria-label': effect.mark }, MARKS[effect.mark] ?? '?'),
    data(below(effect.path, directory), 'span', 'mono'),
    counts(effect, most),
    flags(effect),
    effect.detail ? data(effect.detail, 'span', 'detail') : null)))
}

function flags (effect) {
  const said = [effect.outside && 'outside the workspace', effect.runs_later].filter(Boolean)
  return said.length ? data(`▲ ${said.join(' · ')}`, 'span', 'flags') : null
}

function counts ({ added, removed }, most) {
  const [plus, minus] = [added ?? 0, removed ?? 0]
  if (plus + minus === 0) return make('span')
  return make('span', { class: 'counts' },
    plus ? make('span', { class: 'plus' }, `+${plus}`) : '', plus && minus ? ' ' : '',
    minus ? make('span', { class: 'minus' }, `−${minus}`) : '', bar(plus, minus, most))
}

function bar (plus, minus, most) {
  const part = (name, lines) => {
    const element = make('i', { class: name })
    element.style.width = lines ? `${Math.max(8, 100 * lines / most)}%` : '0'
    return element
  }
  return make('span', { class: 'bar', 'aria-hidden': 'true' }, part('plus', plus), part('minus', minus))
}

function preview (found) {
  if (found.state === 'none' && !found.about && found.diff.length === 0) return []
  const parts = []
  if (found.about) parts.push(data(found.about, 'p'))
  let lines = null
  for (const line of found.diff) {
    if (line.kind === 'file' || lines === null) {
      lines = make('div', { class: 'diff mono' })
      const summary = make('summary', {}, data(line.kind === 'file' ? line.text : 'Differences', 'span', 'mono'))
      parts.push(make('details', { class: 'file', open: true }, summary, lines))
      if (line.kind === 'file') continue
    }
    lines.append(data(line.text, 'span', line.kind === 'note' ? 'note-line' : line.kind))
  }
  if (!found.whole) parts.push(note('bad', 'Not all differences are shown.'))
  return [section(found.state === 'none' ? 'Difference' : 'Preview: what it changed when it was tried', ...parts)]
}

// ---- Decisions ------------------------------------------------------------------------------------------------------

function showActions () {
  const call = state.call
  if (state.answer !== null) return
  byId('end').textContent = promise(call)
  if (state.denies) return footer.replaceChildren(reasons())
  const may = decision => call.may.includes(decision)
  const files = call.effects.length
  const yes = [
    may('apply') && holdButton('apply', files > 1 ? `Hold to apply all ${files}` : 'Hold to apply'),
    may('approve') && holdButton('approve', may('apply') ? 'Hold to run again' : 'Hold to approve', may('apply'))
  ].filter(Boolean)
  const deny = may('deny') ? make('button', { class: 'deny', id: 'deny', disabled: state.busy, onclick: () => { state.denies = true; showActions() } }, 'Deny') : make('span')
  const aside = may('set_aside') && !call.aside ? make('button', { class: 'quiet', id: 'aside', disabled: state.busy, onclick: () => refuse('set_aside') }, 'Set aside') : make('span')
  // Two rows in each case, so that Deny has one place on all cards and among the reasons.
  const none = make('span')
  const parts = yes.length === 0
    ? [deny, none, aside]
    : yes.length === 1 ? [deny, yes[0], aside, tip()] : [tip(), deny, yes[0], aside, yes[1]]
  footer.replaceChildren(make('div', { class: 'actions' },
    call.why_not ? data(sentence(call.why_not), 'p', 'why-not') : null,
    call.yes_until !== null ? make('p', { class: 'why-not' }, 'A phone', call.yes_by ? data(` (${call.yes_by})`) : '', ' has said yes; the desk can withdraw it for a moment.') : null,
    ...parts))
}

const tip = () => make('span', { id: 'tip', class: 'tip', role: 'status' }, state.read ? '' : '▼ read to the end')

// A yes is held, and taken when it is released: phones let a page use a passkey only then. Leaving the button cancels.
function holdButton (decision, name, second = false) {
  // Of the card above this very button: another card has other buttons.
  const call = state.call
  const words = make('span', { class: 'name' }, name)
  const button = make('button', { class: `yes-button${second ? ' second' : ''}`, id: decision, disabled: state.busy || !state.read }, make('span', { class: 'fill' }), words)
  let timer = null
  let full = false
  let challenge = null
  const start = () => {
    if (button.disabled || timer !== null) return
    button.classList.add('holding')
    timer = setTimeout(() => {
      full = true
      words.textContent = 'Release'
      navigator.vibrate?.(20)
      // Begun before the release, so that the passkey is asked for at once.
      challenge = ask('phone_begin', { call_id: call.id, decision, seen: call.seen })
      challenge.catch(() => {})
    }, HOLD_MS)
  }
  const stop = takes => {
    if (timer === null) return
    clearTimeout(timer)
    const signed = full && takes ? challenge : null
    timer = null
    full = false
    button.classList.remove('holding')
    words.textContent = name
    if (signed !== null && state.call?.seen === call.seen) approve(signed)
    else if (takes && byId('tip')) byId('tip').textContent = 'hold until it is full'
  }
  const isInside = event => {
    const box = button.getBoundingClientRect()
    return event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom
  }
  button.addEventListener('pointerdown', event => { if (event.isPrimary && event.button === 0) { button.setPointerCapture(event.pointerId); start() } })
  button.addEventListener('pointerup', event => stop(isInside(event)))
  button.addEventListener('pointercancel', () => stop(false))
  button.addEventListener('contextmenu', event => event.preventDefault())
  const isKey = event => event.key === 'Enter' || event.key === ' '
  button.addEventListener('keydown', event => { if (isKey(event)) { event.preventDefault(); if (!event.repeat) start() } else stop(false) })
  button.addEventListener('keyup', event => { if (isKey(event)) { event.preventDefault(); stop(true) } })
  button.addEventListener('blur', () => stop(false))
  return button
}

async function approve (challenge) {
  await decide(async () => {
    const { nonce, options } = await challenge
    return ask('phone_decide', { nonce, assertion: await signature(options) })
  })
}

async function refuse (decision, reason = '') {
  const { id, seen } = state.call
  await decide(() => ask('phone_refuse', { call_id: id, decision, seen, reason }))
}

async function decide (request) {
  const call = state.call
  state.busy = true
  state.note = null
  showActions()
  try {
    const answer = await request()
    state.busy = false
    if (state.call !== call) return
    state.answer = answer
    showAnswer()
    // What happened while the answer was on its way was not looked at.
    await refresh().catch(failed)
  } catch (problem) {
    state.busy = false
    if (state.call !== call) return
    state.denies = false
    await showProblem(problem)
  }
}

function reasons () {
  const own = make('textarea', { id: 'words', rows: 2, maxlength: 2000, 'aria-label': 'Your own words to the agent', placeholder: 'Your own words to the agent' })
  // Deny stands where it stood before, so that two taps on one place deny without a reason.
  return make('div', { class: 'stack' },
    ...REASONS.map(reason => make('button', { class: 'reason', disabled: state.busy, onclick: () => refuse('deny', reason) }, `Deny: “${reason}”`)),
    own,
    make('div', { class: 'actions' },
      make('button', { class: 'deny', id: 'deny-now', disabled: state.busy, onclick: () => refuse('deny', own.value.trim()) }, 'Deny'),
      make('span', { class: 'tip' }, 'as written above, or without a reason'),
      make('button', { class: 'quiet', id: 'back', onclick: () => { state.denies = false; showActions() } }, 'Back'), make('span')))
}

function showAnswer () {
  const { answer, call } = state
  const said = { approve: '✔ Approved', apply: '✔ To be applied', deny: '⊘ Denied', set_aside: '◈ Set aside' }[answer.decision]
  const later = answer.undo_s > 0 ? `${answer.decision === 'apply' ? 'Applied' : 'Runs'} in ${Math.ceil(answer.undo_s)} s; until then the desk can withdraw it.` : ''
  speak(`${said}. ${later}`)
  const rest = state.calls === null ? [] : state.calls.rows.filter(other => other.id !== call.id && !other.aside && other.yes_until === null)
  let timer = null
  if (later) {
    timer = make('div', { class: 'countdown', 'aria-hidden': 'true' }, make('i'))
    timer.firstChild.style.animationDuration = `${answer.undo_s}s`
  }
  show(
    [make('h1', {}, `Call ${call.id}`)],
    [
      make('p', { class: 'done', id: 'done' }, said),
      later ? make('p', { id: 'later' }, later) : data(sentence(answer.said), 'p'),
      timer,
      data(call.command, 'pre', 'command mono'),
      state.note && note(state.note.kind, state.note.message, state.note.hint)
    ],
    [make('div', { class: 'stack' },
      rest.length > 0 ? make('button', { class: 'main-button', id: 'next', onclick: () => { location.hash = `#call/${rest[0].id}` } }, `Next (${calls(rest.length)})`) : '',
      make('button', { class: 'center', id: 'all', onclick: () => { location.hash = '' } }, 'All waiting calls'))]
  )
}

async function showProblem (problem) {
  if (isGone(problem)) return begin(problem)
  speak(problem.message)
  state.note = { kind: 'bad', message: problem.message, hint: problem.hint }
  // It may have changed, or be decided; the card says which.
  if (['changed_since_seen', 'already_decided', 'unknown_call'].includes(problem.kind)) await refresh().catch(failed)
  if (state.call !== null && state.answer === null) showCall()
  main.scrollTop = 0
}

// ---- What happens meanwhile -----------------------------------------------------------------------------------------

const shownId = () => /^#call\/([0-9]{1,18})$/.exec(location.hash)?.[1] ?? null

async function route () {
  Object.assign(state, { call: null, answer: null, note: null, read: false, denies: false, busy: false })
  main.scrollTop = 0
  if (state.calls !== null) await refresh().catch(failed)
}

async function refresh () {
  state.calls = await ask('phone_calls')
  state.ahead = state.calls.now - Date.now() / 1000
  const id = shownId()
  if (id === null) return showList()
  if (state.busy) return
  let call
  try {
    call = await ask('phone_call', { call_id: id })
  } catch (problem) {
    if (!['already_decided', 'unknown_call'].includes(problem.kind)) throw problem
    return shownId() === id && !state.busy && gone(problem)
  }
  if (shownId() === id && !state.busy) meanwhile(call)
}

// A call that was on the screen waits no more.
function gone (problem) {
  if (state.answer !== null) {
    if (state.answer.undo_s > 0) {
      state.answer = { ...state.answer, undo_s: 0, said: problem.message }
      showAnswer()
    }
    return
  }
  state.note = { kind: '', message: problem.message, hint: problem.hint }
  state.call = null
  history.replaceState(null, '', '/')
  showList()
}

// All that a card shows above its buttons.
function content (call) {
  return JSON.stringify({ ...call, may: 0, why_not: 0, yes_until: 0, yes_by: 0, aside: 0, revision: 0 })
}

// A call that is on the screen, as it is now.
function meanwhile (call) {
  const earlier = state.call
  if (state.answer !== null) {
    if (state.answer.undo_s === 0 || call.yes_until !== null) return
    state.answer = null
    state.note = { kind: '', message: 'The desk has withdrawn your yes. It waits again.' }
  } else if (earlier !== null && earlier.seen === call.seen && earlier.id === call.id) {
    const other = ['may', 'why_not', 'yes_until', 'yes_by', 'aside'].some(name => String(earlier[name]) !== String(call[name]))
    state.call = call
    if (footer.querySelector('.holding') !== null || state.denies) return
    if (content(call) !== state.drawn) {
      state.read = false
      showCall()
    } else if (other) showActions()
    return
  } else if (earlier !== null) {
    state.note = { kind: '', message: 'This call changed while you looked at it. Read it again.' }
    state.read = false
    state.denies = false
  }
  if (state.note !== null) speak(state.note.message)
  state.call = call
  showCall()
  if (earlier !== null) main.scrollTop = 0
}

const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))
let following = null

// Follows what happens for as long as the page is on the screen.
async function follow () {
  following?.abort()
  closeNotifications().catch(() => {})
  const mine = following = new AbortController()
  let failures = 0
  while (!mine.signal.aborted && !document.hidden) {
    try {
      const since = state.calls?.revision
      // It answers after a while although nothing has happened: what a phone may do changes with time.
      if (since !== undefined && failures === 0) await ask('phone_wait', { since }, mine.signal)
      if (mine.signal.aborted) return
      await refresh()
      connection(null)
      failures = 0
    } catch (problem) {
      if (mine.signal.aborted) return
      if (!failed(problem)) return
      await pause(RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)])
    }
  }
}

// Returns whether to try again.
function failed (problem) {
  if (isGone(problem)) {
    begin(problem)
    return false
  }
  if (!(problem instanceof Problem)) throw problem
  connection(problem)
  return true
}

// `ended`: why this phone is a paired one no more, if it was.
async function begin (ended = null) {
  following?.abort()
  for (let failures = 0; ;) {
    try {
      state.device = await ask('phone_device')
      failures = 0
      connection(null)
      if (state.device.confirmed) {
        lookAtPushes().catch(() => {})
        return follow()
      }
      if (byId('unconfirmed') === null) showUnconfirmed()
      await pause(1000)
    } catch (problem) {
      if (isGone(problem)) {
        connection(null)
        Object.assign(state, { device: null, calls: null, call: null, pushes: '' })
        if (problem.kind === 'unknown_phone') endPushes().catch(() => {})
        return showSignIn(ended ?? (problem.kind === 'unknown_phone' ? problem : null))
      }
      connection(problem)
      if (state.device === null) show(title('whisper_tui'), [])
      await pause(RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)])
    }
  }
}

setInterval(() => {
  for (const element of document.querySelectorAll('.age')) element.textContent = age(Number(element.dataset.since))
}, 10_000)
window.addEventListener('hashchange', route)
document.addEventListener('visibilitychange', () => { if (!document.hidden && state.device?.confirmed) follow() })
window.addEventListener('offline', () => connection(new Problem('offline', '')))
window.addEventListener('online', () => { if (state.device?.confirmed) follow() })
// Without it, the page works as well, but not as an app that opens without a connection.
navigator.serviceWorker?.register('/worker.js').catch(() => {})

if (location.pathname === '/pair' && location.hash.length > 1) showPairing()
else begin()
