// Questions and answers over one link: a WebSocket of the page, or the messages of a notebook widget.
// @ts-check

/** @typedef {import("./types.js").Failure} Failure */

/**
 * What carries messages.
 * @typedef {object} Link
 * @property {(message: any) => boolean} send false where nothing can be sent now
 * @property {(message: any) => void} receive set by `Calls`
 * @property {(open: boolean) => void} changed set by `Calls`
 * @property {() => void} close
 */

/** An answer that will not come: a newer question took its place, or it was stopped. */
export class Cancelled extends Error {}

/** The server has gone. */
export class Lost extends Error {}

/** The server has answered that it cannot do this. */
export class Refused extends Error {
  /** @param {Failure} failure */
  constructor(failure) {
    super(failure.what);
    const plain = Object.entries(failure).map(([key, text]) => [key, typeof text === "string" ? text.replaceAll("`", "") : text]);
    /** @type {Failure} texts without the marks of code that the library writes for a terminal */
    this.failure = Object.fromEntries(plain);
  }
}

/** Asks questions, and gives every answer to whom it belongs. */
export class Calls {
  /** @param {Link} link */
  constructor(link) {
    this.link = link;
    this.id = 0;
    this.open = false;
    /** @type {Map<number, { kind: string, part: (name: string, result: any) => void, resolve: (result: any) => void, reject: (reason: Error) => void }>} */
    this.waiting = new Map();
    /** @type {Set<(open: boolean) => void>} */
    this.listeners = new Set();
    link.receive = (message) => this.#receive(message);
    link.changed = (open) => this.#changed(open);
  }

  /**
   * @param {string} kind
   * @param {any} body
   * @param {(name: string, result: any) => void} [part] called with pieces on the way
   * @returns {Promise<any>}
   */
  ask(kind, body, part = () => {}) {
    const id = ++this.id;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { kind, part, resolve, reject });
      if (this.link.send({ ...body, id, kind })) return;
      this.waiting.delete(id);
      reject(new Lost("the server does not answer"));
    });
  }

  /** Stop what is running of a kind. @param {string} kind */
  cancel(kind) {
    this.link.send({ kind: "cancel", of: kind });
    for (const [id, call] of this.waiting)
      if (call.kind === kind) {
        this.waiting.delete(id);
        call.reject(new Cancelled(kind));
      }
  }

  /** @param {(open: boolean) => void} listener */
  listen(listener) {
    this.listeners.add(listener);
  }

  close() {
    this.listeners.clear();
    this.link.close();
    this.#fail();
  }

  /** @param {any} message */
  #receive(message) {
    const call = this.waiting.get(message?.id);
    if (!call) return;
    if ("part" in message) return call.part(message.part, message.result);
    this.waiting.delete(message.id);
    if (message.error) call.reject(new Refused(message.error));
    else if (message.cancelled) call.reject(new Cancelled(call.kind));
    else call.resolve(message.result);
  }

  /** @param {boolean} open */
  #changed(open) {
    this.open = open;
    if (!open) this.#fail();
    for (const listener of this.listeners) listener(open);
  }

  #fail() {
    const calls = [...this.waiting.values()];
    this.waiting.clear();
    for (const call of calls) call.reject(new Lost("the server has gone"));
  }
}

/**
 * Questions of one kind, one at a time: while an answer is on its way, only the newest of the
 * questions that come in is kept. A slider that moves fast so gets an answer as often as the
 * server can give one, and always the last.
 */
export class Newest {
  /**
   * @param {Calls} calls
   * @param {string} kind
   * @param {(result: any, since: number) => void} answered with when it was asked
   * @param {(error: Error, since: number) => void} failed
   */
  constructor(calls, kind, answered, failed) {
    this.calls = calls;
    this.kind = kind;
    this.answered = answered;
    this.failed = failed;
    /** @type {{ body: any, since: number } | null} */
    this.next = null;
    this.busy = false;
  }

  /** @param {any} body */
  ask(body) {
    this.next = { body, since: performance.now() };
    if (!this.busy) this.#go();
  }

  async #go() {
    this.busy = true;
    while (this.next) {
      const { body, since } = this.next;
      this.next = null;
      try {
        this.answered(await this.calls.ask(this.kind, body), since);
      } catch (error) {
        if (!(error instanceof Cancelled)) this.failed(/** @type {Error} */ (error), since);
        if (error instanceof Lost) this.next = null;
      }
    }
    this.busy = false;
  }
}

/** How long to wait before another attempt to connect, in milliseconds. */
const AGAIN = [250, 500, 1000, 2000];

/**
 * A WebSocket that connects again by itself.
 * @param {string} address
 * @returns {Link}
 */
export function socketLink(address) {
  /** @type {WebSocket | null} */
  let socket = null;
  let tries = 0;
  let closed = false;
  let timer = 0;
  /** @type {Link} */
  const link = {
    send(message) {
      if (!socket || socket.readyState !== WebSocket.OPEN) return false;
      socket.send(JSON.stringify(message));
      return true;
    },
    receive() {},
    changed() {},
    close() {
      closed = true;
      clearTimeout(timer);
      socket?.close();
    },
  };
  const connect = () => {
    const made = new WebSocket(address);
    socket = made;
    let was = false;
    made.onmessage = (event) => {
      const message = JSON.parse(event.data);
      if (message.kind === "hello" && !was) {
        was = true;
        tries = 0;
        link.changed(true);
      } else link.receive(message);
    };
    made.onclose = () => {
      if (closed || socket !== made) return;
      if (was || tries === 0) link.changed(false);
      timer = window.setTimeout(connect, AGAIN[Math.min(tries++, AGAIN.length - 1)]);
    };
  };
  connect();
  return link;
}
