// Search in pages opened from the disk: browsers start no worker there, so a hidden frame runs its
// script. The name is the one that the theme's offline plugin looks for.
if (location.protocol === 'file:') {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement('iframe')
      frame.hidden = true
      document.body.append(frame)
      this.inner = frame.contentWindow
      window.addEventListener('message', event => {
        if (event.source !== this.inner) return
        const message = new MessageEvent('message', { data: event.data })
        this.dispatchEvent(message)
        if (this.onmessage) this.onmessage(message)
      })
      this.inner.document.open()
      this.inner.document.write(
        '<script>postMessage = data => parent.dispatchEvent(' +
          'new parent.MessageEvent("message", { data, source: window }))</' +
          'script><script src="' + url + '"></' + 'script>'
      )
      this.ready = new Promise(resolve => (frame.onload = resolve))
      this.inner.document.close()
    }
    postMessage(data) {
      const send = () => this.inner.dispatchEvent(new MessageEvent('message', { data }))
      this.ready.then(send)
    }
    terminate() {}
  }
}
