namespace pawl {

class Link {};

}  // namespace pawl
