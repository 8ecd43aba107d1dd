(function () {
  var svg = document.currentScript.closest('svg'), width = 1184, margin = 8, letter = 7.3;
  var frames = Array.prototype.slice.call(svg.querySelectorAll('.frame'));
  frames.forEach(function (g) {
    var t = g.querySelector('title').textContent;
    g.fullName = t.slice(0, t.lastIndexOf(' - '));
    g.from = +g.dataset.x; g.n = +g.dataset.n;
    g.addEventListener('click', function () { show(g.from, g.n); });
  });
  function show(from, n) {
    var scale = width / n;
    frames.forEach(function (g) {
      var left = Math.max(g.from, from), right = Math.min(g.from + g.n, from + n);
      if (right <= left) { g.style.display = 'none'; return; }
      var x = margin + (left - from) * scale, w = (right - left) * scale;
      var rect = g.querySelector('rect'), text = g.querySelector('text');
      g.style.display = '';
      rect.setAttribute('x', x); rect.setAttribute('width', w);
      text.setAttribute('x', x + 3);
      var room = Math.floor((w - 6) / letter), name = g.fullName;
      text.textContent = name.length <= room ? name : room < 4 ? '' : '…' + name.slice(name.length - room + 1);
    });
  }
})();
