(function () {
function open() {
  var there = document.getElementById(location.hash.slice(1)), fold = there && there.closest('details');
  for (; fold; fold = fold.parentElement.closest('details')) fold.open = true;
  if (there) there.scrollIntoView();
}
addEventListener('hashchange', open);
if (location.hash) open();
})();
